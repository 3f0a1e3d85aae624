"""An own slow reading of conlleval, the script that scores the CoNLL shared tasks, from its tables."""

# conlleval's tables, as the script has them (with the rows for S and E that the version for BIOES adds): a chunk ends,
# or starts, between these two letters whatever their types. Another type ends and starts one as well.
ENDS = ["BB", "BO", "BS", "IB", "IO", "IS", "EE", "EI", "EO", "ES", "EB", "SE", "SI", "SO", "SS", "SB"]
STARTS = ["BB", "IB", "OB", "SB", "EB", "BS", "IS", "OS", "SS", "ES", "OI", "SI", "EI", "SE", "EE", "OE"]


def conlleval(gold: list[list[str]], found: list[list[str]]) -> tuple[int, int, int]:
    """The counts of the script (correct, found, in the corpus), kept word by word as it does: an own slow reading."""
    correct = guessed = known = 0
    inside = False
    before = [("O", ""), ("O", "")]
    words = [pair for g, f in zip(gold, found, strict=True) for pair in [*zip(g, f, strict=True), ("O", "O")]]
    for tags in words:
        now = [(tag.partition("-")[0], tag.partition("-")[2]) for tag in tags]
        ended, started = [], []
        for (letter, kind), (next_letter, next_kind) in zip(before, now, strict=True):
            other = kind != next_kind
            ended.append(letter + next_letter in ENDS or (letter != "O" and other))
            started.append(letter + next_letter in STARTS or (next_letter != "O" and other))
        if inside and all(ended) and before[0][1] == before[1][1]:
            inside, correct = False, correct + 1
        elif inside and (ended[0] != ended[1] or now[0][1] != now[1][1]):
            inside = False
        inside = inside or (all(started) and now[0][1] == now[1][1])
        known, guessed = known + started[0], guessed + started[1]
        before = now
    return correct, guessed, known
