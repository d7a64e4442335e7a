"""The numbers of the Hybrid-IR paper, in %, to stand beside one's own: other hardware, another corpus, other models.

Its Figure 3 shows accuracy over rounds (it rises to 3, then is flat) without values.
"""

from __future__ import annotations

from typing import Literal

DATASETS = ("medqa", "medmcqa", "mmlu")
LLAMA, GPT = "Llama-3-8B-Instruct", "GPT-4o-mini"

TABLE1: dict[str, dict[str, tuple[float, float, float]]] = {
    LLAMA: {
        "zero_shot": (57.7, 53.5, 69.5),
        "medcpt_k1": (55.3, 51.3, 65.8),
        "medrag": (56.4, 56.6, 69.2),
        "imedrag": (71.8, 57.4, 72.3),
        "gfm_rag": (60.3, 58.8, 64.8),
        "hipporag": (57.9, 56.4, 62.1),
        "MedGraphRAG": (57.8, 54.3, 65.2),
        "hybrid_ir": (72.2, 59.8, 75.8),
    },
    GPT: {
        "zero_shot": (80.3, 68.5, 88.9),
        "medcpt_k1": (74.3, 65.1, 84.9),
        "medrag": (75.5, 65.6, 85.1),
        "imedrag": (80.5, 68.2, 85.9),
        "gfm_rag": (78.5, 66.2, 85.9),
        "hipporag": (75.1, 64.3, 85.3),
        "MedGraphRAG": (71.5, 62.8, 83.4),
        "hybrid_ir": (82.9, 68.6, 86.8),
    },
}
TABLE2: dict[str, dict[str, tuple[float, float, float]]] = {
    GPT: {
        "ablation_graph": (78.5, 66.2, 85.9),
        "ablation_dense": (75.5, 65.6, 85.1),
        "ablation_graph_dense": (78.7, 66.6, 84.8),
        "ablation_graph_iterated": (76.4, 68.3, 86.5),
        "ablation_dense_iterated": (80.5, 68.2, 85.9),
        "hybrid_ir": (82.9, 68.6, 86.8),
    }
}
TABLES = {"table1": TABLE1, "table2": TABLE2}
MARK = "from the paper: other hardware, another corpus (18 textbooks), its development sets"


def number(table: str, model: str, method: str, dataset: str) -> float | None:
    """In %; None where the paper has none."""
    row = TABLES.get(table, {}).get(model, {}).get(method)
    return row[DATASETS.index(dataset)] if row and dataset in DATASETS else None


def models(table: str) -> tuple[str, ...]:
    """Whose numbers a table of the paper has."""
    return tuple(TABLES.get(table, {}))


Table = Literal["", "table1", "table2"]
