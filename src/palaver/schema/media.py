"""Images and sounds that a study shows, as far as the study itself carries them: by name and content."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from palaver.schema.base import Name, Noun

MediaType = Literal[
    "image/png",
    "image/jpeg",
    "image/gif",
    "image/webp",
    "audio/mpeg",
    "audio/wav",
    "audio/ogg",
    "audio/flac",
    "audio/mp4",
]


class MediaFile(Noun):
    """A file that a text of the study names, as it was when the study was read."""

    name: Name
    """As the text names it, relative to the folder."""
    hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    """SHA-256 of its content: another picture under the same name is another study."""
    type: MediaType
    size: int = Field(ge=0)
    width: int | None = None
    height: int | None = None

    @property
    def is_image(self) -> bool:
        return self.type.startswith("image/")


class Media(Noun):
    """The folder whose images and sounds texts may show. A study file names `folder`; `files` are those that
    texts name, taken into the study when it is read."""

    folder: Name
    files: tuple[MediaFile, ...] = ()

    def file(self, name: str) -> MediaFile | None:
        """The file that a text calls `name`."""
        return next((file for file in self.files if file.name == name), None)
