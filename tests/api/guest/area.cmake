add_dependencies(test_api_guest lathe_lean lathe_later)  # which tests open
