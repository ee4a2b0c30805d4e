"""A broken rule, as one line that says where, what and how to put it right."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Violation:
    """`details` are printed below the line, indented."""

    where: str
    rule: str
    fix: str
    details: tuple = ()

    def __str__(self):
        return "\n".join([f"{self.where}: {self.rule}; fix: {self.fix}", *(f"    {line}" for line in self.details)])
