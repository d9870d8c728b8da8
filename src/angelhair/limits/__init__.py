"""Every bound, with its unit and its reason. Nothing else in the tree writes a bare number that limits something.

One file a subject; everybody reads them here, as `limits.NAME`, each time anew: the simulator and tests change them.
"""

from angelhair.limits.access import *
from angelhair.limits.asking import *
from angelhair.limits.aws import *
from angelhair.limits.calling import *
from angelhair.limits.databags import *
from angelhair.limits.delaying import *
from angelhair.limits.members import *
from angelhair.limits.serving import *
from angelhair.limits.signing import *
from angelhair.limits.sns import *
from angelhair.limits.timelines import *
from angelhair.limits.topics import *
from angelhair.limits.working import *
