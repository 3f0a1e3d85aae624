"""Text to ids and back: every tokenizer form that released BERT-family folders hold, loaded, used and saved."""

from bertsmith.text.encoding import Encoding
from bertsmith.text.loading import load_tokenizer
from bertsmith.text.templates import Template
from bertsmith.text.tokenizer import Tokenizer

__all__ = ["Encoding", "Template", "Tokenizer", "load_tokenizer"]
