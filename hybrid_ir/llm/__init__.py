"""Language models behind one small protocol (:class:`hybrid_ir.roles.LLM`)."""
