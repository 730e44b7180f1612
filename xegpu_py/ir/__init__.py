"""The dialect definition layer over IRDL: definitions, syntax, context, diagnostics."""
