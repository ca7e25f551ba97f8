"""N-gram models of Chinese words: one table, compiled from an ARPA file, a KenLM trie or counts."""
