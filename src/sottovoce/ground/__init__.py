"""The ground: errors, arguments, entropy, hashes, files; it imports no other layer."""
