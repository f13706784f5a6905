"""The pages, one module per subject. A handler reads its form, asks the peer, and names a template."""
