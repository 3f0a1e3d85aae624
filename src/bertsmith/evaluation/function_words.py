"""English words that hold sentences together rather than say what they are about; a small list of our own making.

Articles and other determiners, pronouns, prepositions, conjunctions, auxiliaries, and a few adverbs of degree, negation
and place in the sentence, with their contracted forms. Every other word counts as a content word.
"""

WORDS = (
    "a an the this that these those some any no every each either neither both all half such much many "
    "more most few fewer less least several enough another other others own same i me my mine myself you "
    "your yours yourself yourselves he him his himself she her hers herself it its itself we us our ours "
    "ourselves they them their theirs themselves one ones oneself who whom whose which what whoever "
    "whatever whichever somebody someone something anybody anyone anything nobody none nothing everybody "
    "everyone everything about above across after against along amid among around as at before behind "
    "below beneath beside besides between beyond by despite down during except for from in inside into "
    "like near of off on onto out outside over past per since through throughout till to toward towards "
    "under underneath until up upon via with within without and but or nor so yet if because although "
    "though unless while whereas whether than when whenever where wherever why how once am is are was "
    "were be been being have has had having do does did doing done will would shall should can could may "
    "might must ought cannot let not never ever too very quite rather just only also even still already "
    "again then there here now thus hence therefore however else instead perhaps almost i'm you're he's "
    "she's it's we're they're i've you've we've they've i'd you'd he'd she'd we'd they'd i'll you'll "
    "he'll she'll it'll we'll they'll that's there's here's what's who's where's how's let's that'll "
    "there'll isn't aren't wasn't weren't haven't hasn't hadn't don't doesn't didn't won't wouldn't "
    "shan't shouldn't can't couldn't mayn't mightn't mustn't needn't oughtn't ain't "
)
FUNCTION_WORDS = frozenset(WORDS.split())


def is_content(word: str) -> bool:
    """Case and the form of the apostrophe aside."""
    return word.lower().replace("’", "'") not in FUNCTION_WORDS
