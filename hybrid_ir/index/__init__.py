"""The build on disk: where files lie, what a manifest promises, how a build is published and opened."""
