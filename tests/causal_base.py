"""A language model of two layers with random weights and a small tokenizer, as `transformers` keeps them."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXT = ["Do you like tea? I love a cup of tea with a little milk. It keeps me warm.", "abc xyz 0123456789"]
CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
MARKS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def write_base(
    folder: Path, *, template: str | None = CHATML, marks: bool = True, places: int = 1024
) -> Path:
    """Write the model; the same every time."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=MARKS, initial_alphabet=sorted(alphabet), show_progress=False
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    names = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"} if marks else {}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    fast.chat_template = template
    fast.save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(fast) + 3,  # room for more tokens than there are, as some models have
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=places,
        tie_word_embeddings=True,
        initializer_range=0.3,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder
