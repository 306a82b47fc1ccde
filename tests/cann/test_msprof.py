"""Times out of recorded tables of msprof, with the columns that its manual documents."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from npusmith.cann.msprof import read_times
from npusmith.errors import CannError

HERE = Path(__file__).parent
OP = ("ExpTaskCustom", "exp_task_custom")


def left(tmp_path: Path, table: str, name: str) -> Path:
    folder = tmp_path / "PROF_000001_20260101" / "mindstudio_profiler_output"
    folder.mkdir(parents=True)
    shutil.copyfile(HERE / table, folder / name)
    return tmp_path


def test_the_last_calls_of_the_operator_count_in_their_order(tmp_path: Path) -> None:
    folder = left(tmp_path, "op_summary.csv", "op_summary_20260101.csv")
    found = read_times(folder, *OP, 3)
    assert found.task_us == (3.08, 3.12, 3.31)  # neither the first call nor other operators
    assert (found.median_us, found.cores) == (3.12, 2)
    assert found.pipes == {"core": 1.52, "vec": 0.06, "scalar": 0.71, "mte2": 0.44, "mte3": 0.26}


def test_the_table_of_msprof_op_is_read_too(tmp_path: Path) -> None:
    found = read_times(left(tmp_path, "OpBasicInfo.csv", "OpBasicInfo.csv"), *OP, 3)
    assert (found.task_us, found.cores, found.pipes) == ((3.22,), 2, {})


def test_without_a_type_the_name_tells_the_operator(tmp_path: Path) -> None:
    text = (HERE / "op_summary.csv").read_text().replace(",ExpTaskCustom,", ",N/A,")
    (tmp_path / "op_summary_1.csv").write_text("\ufeff" + text)
    assert len(read_times(tmp_path, *OP, 20).task_us) == 4


@pytest.mark.parametrize("text", ["", "Op Name,OP Type,Task Duration(us)\nx,Other,3\n"])
def test_a_table_without_the_operator_is_an_error_that_names_it(text: str, tmp_path: Path) -> None:
    (tmp_path / "op_summary_1.csv").write_text(text)
    with pytest.raises(CannError) as caught:
        read_times(tmp_path, *OP, 20)
    assert (caught.value.code, caught.value.seen) == ("device-times", "op_summary_1.csv")
