#!/usr/bin/env python3
"""Reads an event file with Python's standard library alone: one line of JSON for each event.

Usage: event_reader.py FILE

Checks framing, checksums, PNG images; decodes the wire format of protobuf by hand. Fails where anything is wrong.
"""
import json
import struct
import sys
import zlib


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ 0x82F63B78 if byte & 1 else byte >> 1
        table.append(byte)
    return table


TABLE = crc_table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked_crc32c(data[at : at + 8]), f"the length at {at} has another checksum"
        record = data[at + 12 : at + 12 + length]
        assert len(record) == length, f"the record at {at} is cut"
        (crc,) = struct.unpack_from("<I", data, at + 12 + length)
        assert crc == masked_crc32c(record), f"the record at {at} has another checksum"
        yield record
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def fields(data):
    """{number: [raw value, …]}: ints, and bytes of the rest."""
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        else:
            length = {1: 8, 5: 4}.get(kind)
            if length is None:
                assert kind == 2, f"wire type {kind}"
                length, at = varint(data, at)
            value, at = data[at : at + length], at + length
            assert len(value) == length, "a field is cut"
        found.setdefault(number, []).append(value)
    return found


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def one(message, number, default=b""):
    return message.get(number, [default])[-1]


def text(message, number):
    return one(message, number).decode()


def double(message, number):
    return struct.unpack("<d", one(message, number, bytes(8)))[0]


def doubles(message, number):
    packed = one(message, number)
    return list(struct.unpack(f"<{len(packed) // 8}d", packed))


def png_rows(png):
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack_from(">I", png, at + 8 + length)[0] == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + length
    width, height, depth, colour, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert depth == 8 and rest == [0, 0, 0] and b"IEND" in chunks
    rows, row = zlib.decompress(chunks[b"IDAT"]), width * {0: 1, 2: 3, 6: 4}[colour] + 1
    assert len(rows) == row * height
    for y in range(height):
        assert rows[y * row] == 0, "a row is filtered"
    return [list(rows[y * row + 1 : (y + 1) * row]) for y in range(height)]


def value_of(data):
    message = fields(data)
    value = {"tag": text(message, 1)}
    if 9 in message:
        value["plugin"] = text(fields(one(fields(one(message, 9)), 1)), 1)
    if 2 in message:
        value["scalar"] = struct.unpack("<f", one(message, 2))[0]
    if 4 in message:
        image = fields(one(message, 4))
        value["image"] = {
            "height": one(image, 1, 0), "width": one(image, 2, 0), "colorspace": one(image, 3, 0),
            "rows": png_rows(one(image, 4)),
        }
    if 5 in message:
        histo = fields(one(message, 5))
        value["histo"] = {name: double(histo, i + 1) for i, name in enumerate(["min", "max", "num", "sum", "squares"])}
        value["histo"].update(limits=doubles(histo, 6), counts=doubles(histo, 7))
    if 8 in message:
        tensor = fields(one(message, 8))
        shape = [signed(one(fields(dim), 1, 0)) for dim in fields(one(tensor, 2)).get(2, [])]
        value["tensor"] = {
            "dtype": one(tensor, 1, 0), "shape": shape, "texts": [t.decode() for t in tensor.get(8, [])],
        }
    return value


def event_of(data):
    message = fields(data)
    assert double(message, 1) > 1.5e9, "the time is no time of now"
    event = {"step": signed(one(message, 2, 0))}
    if 3 in message:
        event["file_version"] = text(message, 3)
    if 4 in message:
        nodes = [fields(node) for node in fields(one(message, 4)).get(1, [])]
        event["graph"] = [[text(n, 1), text(n, 2), [i.decode() for i in n.get(3, [])]] for n in nodes]
    if 5 in message:
        event["values"] = [value_of(value) for value in fields(one(message, 5)).get(1, [])]
    if 7 in message:
        log = fields(one(message, 7))
        event["session"] = [one(log, 1, 0), text(log, 2)]
    if 8 in message:
        event["run"] = text(fields(one(message, 8)), 1)
    return event


def main(arguments):
    with open(arguments[0], "rb") as file:
        for record in records(file.read()):
            print(json.dumps(event_of(record), separators=(",", ":")))


if __name__ == "__main__":
    main(sys.argv[1:])
