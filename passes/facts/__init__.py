"""What is known of a kernel. Each question about its integers has one analysis, which all passes ask.

| Question | Answer | Asked by |
| --- | --- | --- |
| Between which bounds is it? | `ranges.Ranges` | lowering to vISA, strength reduction, divergent loops |
| Which power of two divides it? | `integer_forms.divisor` | surfaces, transposes, narrow types, importers |
| Is it the same in all lanes? | `integer_forms.Uniformity` | work items, importers |
| Which number has each lane? | `integer_forms.Known` | work items: shuffles, positions in vectors |
| Which numbers does a loop add to it? | `value_facts.added_to`, `moves_of` | ranges, strength reduction |
| Of which arguments of a loop is it computed? | `value_facts.arguments_of` | load ahead, prefetch |
| Of what is it a polynomial? | `index_polynomials.IndexForms` | scattered tiles, adjacent blocks, importers |
| How does a call compute it? | `surfaces.expression_of` | sizes that calls check |
"""
