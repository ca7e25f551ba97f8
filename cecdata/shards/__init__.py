"""The dataset on disk: schemas, files, manifest, verification."""
