zones = { eu = 1, us = 2 }
