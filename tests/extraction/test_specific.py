import pytest

from hybrid_ir.extraction.specific import is_specific

pytest.importorskip("drug_named_entity_recognition")


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("bubye river", "In which country is the Bubye River?", True),
        ("waterfall", "What waterfall is it?", False),
        ("waterfall", "Waterfall or not?", False),
        ("il-2", "does IL-2 help?", True),
        ("il-2", "il-2 helps", True),
        ("kanamycin", "which effect has kanamycin?", True),
        ("rabies virus", "what carries the rabies virus?", True),
        ("rabies viruses", "what carries rabies viruses?", True),
        ("virus", "what carries the virus?", False),
        ("stroke survivor", "is it a stroke survivor?", False),
        ("film director", "which film director?", False),
        ("given by a person", "which effect?", True),
        ("c++ (a+b", "uses c++ (a+b here", False),
    ],
)
def test_names_and_everyday_words(name, text, wanted):
    assert is_specific(name, text) is wanted
