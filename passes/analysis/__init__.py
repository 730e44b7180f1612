"""Questions about a kernel, whose answers change nothing. Each question about integers has one analysis.

| Question | Answer | Asked by |
| --- | --- | --- |
| Between which bounds is it? | `integer_ranges.Ranges` | lowering to vISA, strength reduction, divergent loops |
| Which power of two divides it? | `divisibility.divisor` | surfaces, transposes, narrow types, importers |
| Is it the same in all lanes? | `divisibility.Uniformity` | work items, importers |
| Which number has each lane? | `divisibility.Known` | work items: shuffles, positions in vectors |
| Which numbers does a loop add to it? | `ir_queries.added_to`, `moves_of` | ranges, strength reduction |
| Of which arguments of a loop is it computed? | `ir_queries.arguments_of` | load ahead, prefetch |
| Of what is it a polynomial? | `affine_analysis.IndexForms` | scattered tiles, adjacent blocks, importers |
| How does a call compute it? | `block_surfaces.expression_of` | sizes that calls check |
"""
