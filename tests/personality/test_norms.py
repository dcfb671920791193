from __future__ import annotations

from pathlib import Path

import pytest

from palaver.errors import DataError
from palaver.personality.norms import MRC_COLUMNS, read_norms

# letters 05, phonemes 04, syllables 2, frequencies, FAM 588, CONC 321, IMAG 400, MEANC 0, MEANP 0, AOA 239
LINE = "0504200098010450012340020588321400000000239 NN    HAPPY|h&pI|h&pI|20"
NONE = "0500000000000000000000000000000000000000000 V     HAPPY|||"


def test_mrc_columns(tmp_path: Path) -> None:
    path = tmp_path / "mrc2.dct"
    assert len(LINE.split()[0]) == 43
    line = LINE[:43] + " NN     ".ljust(8) + "HAPPY|h&pI|h&pI|20"
    none = NONE[:43] + " V      ".ljust(8) + "HAPPY|||"
    path.write_text(f"{line}\n{none}\n")
    happy = {name: values.get("happy") for name, values in read_norms(path).items()}
    assert happy["NLET"] == 5
    assert happy["NPHON"] == 4
    assert happy["NSYL"] == 2
    assert happy["K-F-FREQ"] == 98
    assert happy["FAM"] == 588
    assert happy["CONC"] == 321
    assert happy["IMAG"] == 400
    assert happy["AOA"] == 239
    assert happy["MEANC"] is None, "nought is unknown"
    ends = [end for _, end in MRC_COLUMNS.values()]
    assert [begin for begin, _ in MRC_COLUMNS.values()] == [0, *ends[:-1]]
    assert ends[-1] == 43


def test_tables(tmp_path: Path) -> None:
    (tmp_path / "c.txt").write_text("Word\tBigram\tConc.M\nDog\t0\t4.85\nidea\t0\tNA\n")
    (tmp_path / "a.csv").write_bytes("\ufeffWord,Rating.Mean\rdog,2.5\r,\rcat,#N/A\r".encode())
    (tmp_path / "v.csv").write_text(",Word,V.Mean.Sum,A.Mean.Sum,D.Mean.Sum\n1,dog,7,5,6\n")
    (tmp_path / "s.txt").write_text("Word\tLg10WF\nthe\t6.17\nhalf a line")
    norms = read_norms(*(tmp_path / name for name in ("c.txt", "a.csv", "v.csv", "s.txt")))
    assert norms == {
        "concreteness": {"dog": 4.85},
        "age_of_acquisition": {"dog": 2.5},
        "valence": {"dog": 7.0},
        "arousal": {"dog": 5.0},
        "dominance": {"dog": 6.0},
        "frequency": {"the": 6.17},
    }
    with pytest.raises(DataError, match="came from another file"):
        read_norms(tmp_path / "c.txt", tmp_path / "c.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Word,Something\na,1\n", "no word norms that are known"),
        ("Word,V.Mean.Sum\na,1\n", "no column a.mean.sum, d.mean.sum"),
        ("Word\tConc.M\nx\t1\ny\tlots\nz\t1\t2\n", "2 mistakes"),
    ],
)
def test_wrong_tables(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "n.csv").write_text(text)
    with pytest.raises(DataError) as caught:
        read_norms(tmp_path / "n.csv")
    assert said in str(caught.value)


def test_a_broken_line_of_mrc(tmp_path: Path) -> None:
    line = LINE[:43] + " NN     ".ljust(8) + "HAPPY|h&pI|h&pI|20"
    (tmp_path / "mrc2.dct").write_text(f"{line}\nrubbish\n")
    with pytest.raises(DataError, match="line 2: this is not a word of the MRC"):
        read_norms(tmp_path / "mrc2.dct")


def test_the_real_files(shared_data: Path) -> None:
    folder = shared_data / "personality"
    norms = read_norms(*(folder / n for n in ("mrc2.dct.gz", "subtlexus.txt.gz", "kuperman_aoa.csv.gz")))
    assert norms["FAM"]["house"] == 600
    assert len(norms["CONC"]) > 4000
    assert len(norms["frequency"]) > 70_000
    assert len(norms["age_of_acquisition"]) > 30_000
