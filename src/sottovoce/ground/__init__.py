"""The ground: errors, argument checks, entropy, hashes, files. Nothing here imports another layer."""
