"""Analyses of kernels, which do not change the IR. Each question about integers has one analysis.

Bounds and divisors are one lattice with one table of transfer functions. The others share none of these: uniformity
concerns values of all types and no arithmetic, and polynomials are exact, with scalars in place of what they do not
express.

| Question | Analysis | Users |
| --- | --- | --- |
| Between which bounds is it? | `integer_analysis.Integers` | lowering to vISA, strength reduction, divergent loops |
| Which power of two divides it? | `integer_analysis.Integers` | surfaces, transposes, narrow types, importers |
| Is it the same in all lanes? | `uniformity.Uniformity` | work items, importers |
| Which constant does each lane have? | `uniformity.LaneConstants` | work items: shuffles, positions in vectors |
| Which numbers does a loop add to it? | `ir_queries.added_to`, `moves_of` | ranges, strength reduction |
| On which arguments of a loop does it depend? | `ir_queries.arguments_of` | load ahead, prefetch |
| Which polynomial of scalars is it? | `affine_analysis.IndexForms` | scattered tiles, adjacent blocks, importers |
| Which expression of a call's arguments is it? | `block_surfaces.expression_of` | sizes that calls check |
"""
