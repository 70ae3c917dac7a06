"""Who does it: which node leads, which node owns which source partition and which view?"""
