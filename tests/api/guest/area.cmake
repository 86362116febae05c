add_dependencies(test_api_guest lathe_lean lathe_0_3)  # which tests open
