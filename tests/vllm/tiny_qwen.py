"""A random Qwen2 of some 100 thousand weights in the folder layout of the hub, tokenizer and chat template included."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM, set_seed

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


def qwen(folder: Path, text: str) -> Path:
    """Its words are those of ``text``, and every byte; what it writes is noise, the same each time."""
    set_seed(0)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        [text], BpeTrainer(vocab_size=1024, special_tokens=SPECIAL, initial_alphabet=alphabet)
    )
    ends = {"eos_token": SPECIAL[2], "pad_token": SPECIAL[0]}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **ends)
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    config = Qwen2Config(
        vocab_size=len(fast),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=4096,
        eos_token_id=fast.eos_token_id,
        bos_token_id=None,
        pad_token_id=fast.pad_token_id,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder, safe_serialization=True)
    return folder
