"""One query -> evidence: entity linking, the two paths, fusion."""
