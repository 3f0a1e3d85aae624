"""Tokenizers trained from word counts: WordPiece, byte-level BPE and unigram, the same bytes on every run and machine.

Counts are whole numbers, ties fall to the order of the texts, and the few fractions that unigram needs come from +, -,
× and ÷ alone in a fixed order, so nothing depends on threads, hash seeds or a machine's mathematics library.
"""
