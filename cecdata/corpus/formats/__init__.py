"""The file formats of a corpus: parallel modules, named by the table in `reading`."""
