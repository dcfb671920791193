"""Draw the pictures and play the note of this example, with the standard library alone."""

from __future__ import annotations

import math
import struct
import wave
import zlib
from pathlib import Path

FOLDER = Path(__file__).parent / "media"
SKY, SUN, SEA, SAND = (196, 222, 243), (247, 190, 62), (54, 110, 160), (232, 214, 170)


def draw(path: Path, *, sun: bool, width: int = 480, height: int = 270) -> None:
    """A beach, with or without a sun, as a PNG."""
    lines = []
    for y in range(height):
        row = bytearray()
        for x in range(width):
            colour = SKY if y < 150 else SEA if y < 210 + 6 * math.sin(x / 30) else SAND
            if sun and (x - 360) ** 2 + (y - 70) ** 2 < 38**2:
                colour = SUN
            row += bytes(colour)
        lines.append(b"\0" + bytes(row))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"".join(lines), 9)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def play(path: Path, *, pitch: float = 440.0, seconds: float = 1.0, rate: int = 8000) -> None:
    """A note that fades, as a WAV."""
    count = int(seconds * rate)
    samples = [int(12_000 * (1 - n / count) * math.sin(2 * math.pi * pitch * n / rate)) for n in range(count)]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(struct.pack(f"<{count}h", *samples))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    draw(FOLDER / "beach.png", sun=True)
    draw(FOLDER / "clouds.png", sun=False)
    play(FOLDER / "note.wav")
