"""Questions with known answers, from files."""
