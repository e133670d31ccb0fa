"""Interface for language models: the archive as a server of the Model Context Protocol (MCP).

    client ──stdio or HTTP──> server (`server`, `transports`) ──> tool (`tool`) ──> a function of
    the archive

The tools are plain functions of an `Archive`, a module for each subject: `query_tools`,
`study_tools`, `network_tools`, `relation_tools`, `proposal_tools`.
Their return types are dataclasses, from which the official SDK makes the output schemas. This
package needs the extra `mcp`; it imports from `agents`, `trainer` and the layers below, and is
imported by the command line and by programs that mount it in a page.
"""
