"""The pages about a study for staff and the public: the report, its charts, its PDF."""
