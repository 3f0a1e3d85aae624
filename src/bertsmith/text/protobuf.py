"""Walks through a protocol buffer without its schema: SentencePiece files and TensorFlow's index are made of them.

In: the bytes of a message. Out: its fields in order, each a number and what stands under it. A message that breaks the
rules of the wire format (protobuf.dev, "Encoding") raises `Damaged`.
"""

from collections.abc import Iterator


class Damaged(ValueError):
    """What is wrong inside a file; whoever knows its name makes the sentence."""


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(field number, value): an integer where the wire has one of seven bits a byte, else the raw bytes."""
    at = 0
    while at < len(message):
        tag, at = read_varint(message, at)
        field, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = read_varint(message, at)
            yield field, value - (1 << 64) if value >> 63 else value
            continue
        if wire == 2:
            length, at = read_varint(message, at)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise Damaged("it is no protocol buffer")
        yield field, take(message, at, length)
        at += length


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where the next thing starts."""
    value = 0
    for shift in range(0, 70, 7):
        byte = take(data, at, 1)[0]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (1 << 64) - 1, at
    raise Damaged("it has a number that does not end")


def take(data: bytes, at: int, length: int) -> bytes:
    if at < 0 or at + length > len(data):
        raise Damaged("it is cut short")
    return data[at : at + length]


def as_int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise Damaged("bytes stand where a number belongs")
    return value


def as_bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise Damaged("a number stands where bytes belong")
    return value
