"""One study alive: its life, its documents, its learning and its report."""
