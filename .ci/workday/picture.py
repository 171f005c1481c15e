"""Looks at a PNG of 8 bits a channel (ISO/IEC 15948)."""

import collections
import struct
import zlib


def colours(path):
    """The size of a picture, and how often it has each colour."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n", "no PNG"
    at, packed = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        at += 12 + length
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert depth == 8 and colour in (2, 6) and not interlaced, "another kind of PNG"
        if kind == b"IDAT":
            packed += body
    step = {2: 3, 6: 4}[colour]
    rows, found, above = zlib.decompress(packed), collections.Counter(), bytes(width * step)
    for start in range(0, len(rows), width * step + 1):
        row = bytearray(rows[start + 1:start + 1 + width * step])
        for i in range(len(row)):
            left, up, corner = (row[i - step], above[i], above[i - step]) if i >= step else (0, above[i], 0)
            row[i] = (row[i] + predicted(rows[start], left, up, corner)) & 255
        found.update(tuple(row[i:i + 3]) for i in range(0, len(row), step))
        above = bytes(row)
    return (width, height), found


def predicted(method, left, up, corner):
    if method == 4:  # Paeth
        guess = left + up - corner
        return min((left, up, corner), key=lambda value: abs(guess - value))
    return (0, left, up, (left + up) // 2)[method]
