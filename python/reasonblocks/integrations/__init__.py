"""Agent frameworks, one file each. Import the file of the framework you use; none is imported before."""
