# family: python
# tries: to unpack an archive over the guest's own code
# invariant: 6
# layers: readonly, landlock, uid, user

import io
import tarfile

packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w") as archive:
    info = tarfile.TarInfo("../glasshouse/slipped.py")
    archive.addfile(info)
packed.seek(0)
with tarfile.open(fileobj=packed) as archive:
    archive.extractall("/session")
open("/glasshouse/slipped.py").read()
"escaped"
