"""Interface for language models: the archive as a server of the Model Context Protocol (MCP).

    client ──stdio or HTTP──> `transports` ──> tool (`server`) ──> a function of the archive (`tools`)

The tools are plain functions of an `Archive`, a module for each subject. Their return types are
dataclasses, from which the official SDK makes the output schemas. This package needs the extra
`mcp`; it imports from `agents`, `trainer` and the layers below, and is imported by the command line
and by programs that mount it in a page.
"""
