"""Programs of the system that tests run for real."""

from __future__ import annotations

import os
import shutil

import pytest

NGINX_FRAME = """
daemon off;
pid {folder}/pid;
error_log stderr;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  {inside}
}}
"""
"""A configuration for somebody who is not root; `inside` are its servers."""


def needed(name: str) -> str:
    """Where it is. Without it the test is skipped; with PALAVER_REQUIRE_PROXY=1 (CI) that is a failure."""
    program = shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    if program is None:
        reason = f"{name} is not installed (Debian: apt-get install nginx-light caddy openssl)"
        if os.environ.get("PALAVER_REQUIRE_PROXY") and name in ("nginx", "caddy", "openssl"):
            pytest.fail(reason)
        pytest.skip(reason)
    return program
