"""What a server is to hold: models by the names that people give, and how they run.

In: flags. Out: a `Plan` that another process can be told as JSON, and from it `Residents`.
"""

import gc
import logging
from dataclasses import asdict, dataclass
from pathlib import Path
from time import sleep
from typing import TYPE_CHECKING, Any

from bertsmith.errors import BertsmithError
from bertsmith.serving.settings import Settings

if TYPE_CHECKING:
    from bertsmith.model import Model
    from bertsmith.searching import Index
    from bertsmith.serving.residents import Residents

log = logging.getLogger("bertsmith.serving")
PAUSE = 1.0  # seconds between two looks at an index that somebody else writes


@dataclass(frozen=True)
class Plan:
    models: tuple[str, ...] = ()  # ID=FOLDER or FOLDER; none: the default model
    adapters: tuple[str, ...] = ()  # NAME=FOLDER, on the first model
    devices: tuple[str, ...] = ("auto",)  # one inference process each
    dtype: str = "float32"
    threads: int | None = None
    batch_tokens: int | None = None
    download: bool = False
    index: str | None = None  # a folder of documents that the first model searches

    def load(self, settings: Settings, device: str) -> "Residents":
        import bertsmith
        from bertsmith.models.hub import find_default, name_of
        from bertsmith.serving.residents import Residents, name_models

        if device.startswith("cuda:"):
            _choose_device(device)
        named = name_models(self.models)
        if not named:
            source = find_default()
            named = {Path(name_of(Path(source))).name: str(source)}
        models: dict[str, Model] = {}
        for name, folder in named.items():
            models[name] = bertsmith.load(
                folder,
                device=device,
                dtype=self.dtype,
                download=self.download,
                threads=self.threads,
                batch_tokens=self.batch_tokens,
                adapters=_pair_adapters(self.adapters) if not models else None,
            )
        first = next(iter(models))
        indexes = {} if self.index is None else {first: _open_index(self.index, models[first])}
        for note in (note for index in indexes.values() for note in index.notes):
            log.warning("%s", note)  # a file that was passed over will never be found
        residents = Residents(models, settings.default, indexes)
        gc.collect()
        gc.freeze()  # what is loaded stays: the collector need not look at it again while somebody waits
        return residents


def _open_index(folder: str, model: "Model") -> "Index":
    """Where another process brings it up to date, as one for another device of this server does, it is waited for."""
    import bertsmith
    from bertsmith.search.updating import Taken

    said = False
    while True:
        try:
            return bertsmith.index(folder, model)
        except Taken:
            if not said:
                log.warning("another process is writing the index of %s; this one waits for it.", folder)
            said = True
            sleep(PAUSE)


def _pair_adapters(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for one in given:
        name, equals, folder = one.partition("=")
        if not equals or not name or not folder:
            raise BertsmithError(f"--adapter {one!r} must be NAME=FOLDER.")
        found[name] = folder
    return found


def _choose_device(device: str) -> None:
    """Kernels of one's own are started on the current device, which is the first unless another is chosen."""
    import torch

    from bertsmith.loading import find_device

    torch.cuda.set_device(find_device(device))


def to_json(value: Plan | Settings) -> dict[str, Any]:
    return asdict(value)


def _restore(values: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def read_plan(values: dict[str, Any]) -> Plan:
    return Plan(**_restore(values))


def read_settings(values: dict[str, Any]) -> Settings:
    return Settings(**_restore(values))
