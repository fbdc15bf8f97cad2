"""Texts that mean harm: to SQL, to logs, to terminals, to whatever reads what we write."""

from __future__ import annotations

FORGED = "2026-11-18 12:00:00.000+00:00 ERROR   forged"
TEXTS = (
    f"a\n{FORGED}",
    f"a\r\n{FORGED}",
    f"a\r{FORGED}",
    f"a\x0b{FORGED}",
    f"a\x85{FORGED}",
    f"a\u2028{FORGED}",
    f"a\u2029{FORGED}",
    '"}\n{"time": "2026-11-18T12:00:00.000+00:00", "level": "error", "message": "forged"}',
    "\x1b[31mred\x1b[0m",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x9b31mred",
    "\x08\x08\x08gone\x7f",
    "left\u202eright",
    "zero\u200bwidth\ufeff",
    "'; DROP TABLE outbox; --",
    '"; DROP TABLE outbox; --',
    "') OR 1=1 --",
    "$$; DROP TABLE outbox; $$",
    "E'\\''; DROP TABLE outbox; --",
    "%s %(name)s %d 100%",
    "{table} {0} {{}}",
    "${jndi:ldap://127.0.0.1/x} $(reboot) `reboot`",
    'evil"} 1\nharvest_leader{name="forged',
    "harvest.lease; harvest.event",
    "<script>alert(1)</script> [a](javascript:alert(1))",
    "../../etc/passwd",
    "null",
    "",
    " ",
    "\\",
    "\\n",
    "a" * 2000,
    "é\u0301\U0001f4a5",
    "--all",
    "-e",
)
"""What anybody may send in: none of it may do anything but stand there, visibly."""
