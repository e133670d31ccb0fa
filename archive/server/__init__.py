"""The process of the embedded server: start, discovery, supervision. Imports settings and errors."""
