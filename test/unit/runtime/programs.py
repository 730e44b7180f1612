"""The kernel that tests of the runtime run."""

SCALE = """\
.version 3.8
.kernel "scale"
.decl In v_type=G type=uq num_elts=1 align=qword
.decl Out v_type=G type=uq num_elts=1 align=qword
.decl Factor v_type=G type=f num_elts=1 align=dword
.decl Shift v_type=G type=w num_elts=2 align=dword
.decl From v_type=G type=uq num_elts=1 align=qword
.decl To v_type=G type=uq num_elts=1 align=qword
.decl Offset v_type=G type=ud num_elts=1 align=dword
.decl X v_type=G type=f num_elts=16 align=GRF
.decl Shifted v_type=G type=f num_elts=1 align=dword
.decl P v_type=P num_elts=16
.input In offset=64 size=8
.input Out offset=72 size=8
.input Factor offset=80 size=4
.input Shift offset=84 size=4
.kernel_attr Target="cm"
.kernel_attr SimdSize=16
    shl (M1_NM, 1) Offset(0,0)<1> %group_id_x(0,0)<0;1,0> 6:ud
    add (M1_NM, 1) From(0,0)<1> In(0,0)<0;1,0> Offset(0,0)<0;1,0>
    add (M1_NM, 1) To(0,0)<1> Out(0,0)<0;1,0> Offset(0,0)<0;1,0>
    lsc_load.ugm (M1_NM, 1) X:d32x16t flat[From]:a64
    mad (M1, 16) X(0,0)<1> X(0,0)<1;1,0> Factor(0,0)<0;1,0> 0.0:f
    mov (M1_NM, 1) Shifted(0,0)<1> Shift(0,1)<0;1,0>
    add (M1, 16) X(0,0)<1> X(0,0)<1;1,0> Shifted(0,0)<0;1,0>
    cmp.gt (M1, 16) P X(0,0)<1;1,0> 40.0:f
    (P) mov (M1, 16) X(0,0)<1> 40.0:f
    lsc_store.ugm (M1_NM, 1) flat[To]:a64 X:d32x16t
    ret (M1, 1)
"""
"""Out = min(In * Factor + Shift[1], 40), 16 elements a workgroup."""
