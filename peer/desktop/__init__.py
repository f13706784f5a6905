"""The peer among a desktop's other programs: started at login, notifications, a tray icon, a shell around the page."""
