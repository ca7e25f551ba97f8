"""Systems that correct sentences: parallel files, one table in `table.py`."""
