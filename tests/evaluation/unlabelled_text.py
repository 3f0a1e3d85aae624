"""A short text with all that is awkward about words, and the documents in it."""

TEXT = (
    'Ann lives in Oslo, and Bob\'s film was very good!\nIt is not dull: "fine".\n\n'
    "The match was won 3,141.5 to 2 . . . the the the town\n\n\n"
    "What a zebra (who sees rivers) sees, the well-known town sees."
)
DOCUMENTS = [part.strip("\n") for part in TEXT.split("\n\n") if part.strip()]
