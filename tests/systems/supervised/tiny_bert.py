"""A BERT of a few thousand random weights with a vocabulary of its own, saved as safetensors."""

from __future__ import annotations

from pathlib import Path

from systems.supervised.synthetic import FILLER

WORDS = (*FILLER, "hazard", "question", "number", "may", "i", "?", "##s")


def save_tiny_bert(folder: Path, *, positions: int = 64, safe: bool = True) -> Path:
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *map(str, range(10)), "##0", "##1", "##2"]
    pieces = Tokenizer(models.WordPiece({token: at for at, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    pieces.normalizer, pieces.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    special = {f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    PreTrainedTokenizerFast(tokenizer_object=pieces, model_input_names=inputs, **special).save_pretrained(folder)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = BertModel(BertConfig(vocab_size=len(vocabulary), max_position_embeddings=positions, **sizes))
    model.save_pretrained(folder)
    if not safe:
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    return folder
