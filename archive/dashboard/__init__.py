"""The page: a web server that shows an archive, live, to browsers.

    server ─> application ─> access (token, Host, Origin, policy) ─> endpoints ─> feeds <─ news (one
    reader)

`endpoints` answer requests, one module a view; `feeds` hold what changes while a page is open, and
`news` reads the archive for all browsers together. `templates` and `static` are the pages
themselves: hand-written ES modules without a build step, which load nothing from elsewhere. May
import agents, the trainer, queries and everything below; needs the extra `dashboard`.
"""
