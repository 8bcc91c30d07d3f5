"""Compiled code in the wheel, where ``make wheel`` has made some: it is then of one platform."""

import os
import sys
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ShippedCode(BuildHookInterface):  # type: ignore[type-arg]
    """``KEYHOLE_SHIPPED_CODE`` names the archive; without it the wheel is for every platform."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        archive = os.environ.get("KEYHOLE_SHIPPED_CODE")
        if archive and version != "editable":
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["force_include"][archive] = "keyhole/kernels/shipped.zip"
            build_data["pure_python"] = False
            build_data["tag"] = f"cp{sys.version_info[0]}{sys.version_info[1]}-none-{platform}"
