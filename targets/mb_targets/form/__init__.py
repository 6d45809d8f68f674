"""The lifted form: loop nests with guards and affine accesses, their schedules, their evaluation."""
