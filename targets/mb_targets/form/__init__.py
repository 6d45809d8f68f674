"""The lifted form: loop nests with guards and affine accesses, their schedules and their reference evaluation."""
