"""What tells two language models apart, beside their names."""

import pytest

from hybrid_ir.llm.revision import revision, sampling_fingerprint
from hybrid_ir.settings import EndpointSettings, LlamaCppSettings, VLLMSettings


def endpoint(**changes):
    return EndpointSettings(model="m", base_url="http://127.0.0.1:1/v1", **changes)


def test_a_folder_or_file_is_known_by_its_content(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    weights = folder / "model.safetensors"
    weights.write_bytes(b"a" * 100)
    vllm = VLLMSettings(backend="vllm", model=str(folder))
    first = revision(vllm)
    assert len(first) == 16
    assert revision(vllm) == first
    (folder / "tokenizer.json").write_text("{}")
    second = revision(vllm)
    weights.write_bytes(b"a" * 99 + b"b")
    assert len({first, second, revision(vllm)}) == 3
    gguf = LlamaCppSettings(backend="llama_cpp", model=str(weights))
    assert revision(gguf) == revision(gguf) != revision(vllm)


def test_a_package_by_its_version_and_what_is_not_here_by_the_settings():
    assert revision(LlamaCppSettings(backend="llama_cpp", model="package:numpy"))[0].isdigit()
    assert revision(LlamaCppSettings(backend="llama_cpp", model="package:no_such_package")) == ""
    assert revision(VLLMSettings(backend="vllm", model="owner/name", revision="v1")) == "v1"
    assert revision(endpoint()) == ""


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"concurrency": 1, "timeout_s": 1, "retries": 0, "window": 99}, True),
        ({"temperature": 1}, False),
        ({"max_tokens": 7}, False),
        ({"structured": "none"}, False),
        ({"extra_body": {"top_p": 0.5}}, False),
    ],
)
def test_sampling_counts_and_speed_does_not(changes, same):
    assert (sampling_fingerprint(endpoint(**changes)) == sampling_fingerprint(endpoint())) is same


def test_of_an_engine_only_what_it_writes_by_counts():
    def of(**engine):
        return sampling_fingerprint(VLLMSettings(backend="vllm", model="m", engine=engine))

    assert of(max_num_seqs=3, tensor_parallel_size=2) == of()
    assert of(quantization="awq") != of() != of(dtype="float32")
